"""The command line, the corpora that it reads, and what it measures. Imports every other room."""
