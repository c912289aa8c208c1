"""The lite pull consumer: it pulls ahead, and the application polls."""
