#!/usr/bin/env bash
# Installs Chromium, in which tests look at pages, where there is no browser and packages can be installed.
set -eu
for name in chromium chromium-browser google-chrome chrome; do
    if command -v "$name" > /dev/null; then
        exit 0
    fi
done
if ! command -v apt-get > /dev/null || [ "$(id -u)" != 0 ]; then
    echo "There is no Chromium, so no test looks at pages. On Debian, as root: apt-get install chromium" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium > /dev/null
