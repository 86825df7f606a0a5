"""Whether terms are equal everywhere: by evaluation, by boxes and periods, by Presburger arithmetic."""
