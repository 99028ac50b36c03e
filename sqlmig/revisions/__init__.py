"""The history: revision files, the graph they make, and the names people call them by."""
