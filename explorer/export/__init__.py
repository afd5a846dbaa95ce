"""What a reader takes along: numbers, print figures, offline pages, published folders."""
