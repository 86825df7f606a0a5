"""Other simplifiers of index expressions, measured on the corpora that eqsat is measured on."""
