"""The report in words: verdicts, remarks, the glossary."""
