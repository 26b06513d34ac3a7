"""One subcommand a module: parse arguments, call, print."""
