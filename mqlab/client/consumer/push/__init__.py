"""The push consumer: its pull loop, its listeners, and the services that call them."""
