"""The commands `cepheid host …`: they run durable hosts, change them and read from them."""
