#!/usr/bin/env bash
# Installs a PostgreSQL server for the tests where there is none and packages can be installed. The tests start it in a
# folder of their own.
set -eu
if command -v initdb > /dev/null || compgen -G "/usr/lib/postgresql/*/bin/initdb" > /dev/null; then
    exit 0
fi
if ! command -v apt-get > /dev/null || [ "$(id -u)" != 0 ]; then
    echo "There is no PostgreSQL server, so its tests cannot run. On Debian, as root: apt-get install postgresql" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# No cluster of its own: nothing on the machine is to start a server.
mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf
apt-get install -y -qq --no-install-recommends postgresql > /dev/null
