"""What the paper left open: a module for each question, with a study and the section of the page that answers it."""
