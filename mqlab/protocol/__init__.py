"""What travels between nodes and what is stored: codes, headers, bodies, commands, messages, byte for byte RocketMQ's."""
