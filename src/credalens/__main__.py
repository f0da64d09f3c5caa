"""``python -m credalens``, the same as ``credalens``."""

from credalens.cli import main

if __name__ == "__main__":
    main()
