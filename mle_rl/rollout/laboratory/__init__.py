"""The laboratory of notebooks 03 and 04: rules by name, compared with theory, and what they teach.

Nothing here is needed to train.
"""
