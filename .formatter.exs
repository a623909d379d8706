# Used by "mix format".
[inputs: ["mix.exs", "lib/**/*.ex", "test/**/*.exs"], line_length: 100]
