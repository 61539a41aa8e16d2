"""Machine judges: chat APIs, programs and functions, by one contract; and a server for tests."""
