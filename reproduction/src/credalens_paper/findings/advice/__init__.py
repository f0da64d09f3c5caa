"""Ten sentences for a practitioner; what each of them says follows from the result files."""
