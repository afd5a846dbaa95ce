"""What leaves the app: numbers, pictures, offline pages, published folders."""
