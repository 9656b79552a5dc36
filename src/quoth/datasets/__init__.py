"""Published questions and tasks, and how an answer is judged."""
