"""The linear theory: normal forms of terms, and what is known of their values."""
