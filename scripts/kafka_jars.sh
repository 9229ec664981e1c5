#!/usr/bin/env bash
# Copies the jars that kafka/pom.xml names to FOLDER/connector and FOLDER/broker: `make kafka`.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1

give_up() {
    echo "kafka: $1" >&2
    echo "       Until then the tests against a real Kafka are skipped, and cepheid stream needs --jars for kafka://" >&2
    rm -rf "$folder"
    exit 1
}

command -v mvn > /dev/null || give_up "there is no mvn, which copies the jars of Kafka. On Debian: apt-get install maven"
# Maven waits for hours where the network takes its requests and does not answer.
limit=$(command -v timeout > /dev/null && echo "timeout 300" || true)
rm -rf "$folder"
for part in connector broker; do
    echo "kafka: copying the $part's jars"
    $limit mvn --quiet --batch-mode --no-transfer-progress --file kafka/pom.xml --activate-profiles "$part" \
        dependency:copy-dependencies -DoutputDirectory="$(pwd)/$folder/$part" \
        || give_up "Maven could not get the $part's jars, for the reason above"
done
