/**
 * Terminal sequences: CSI, strings (OSC, DCS and others), and short sequences. An unterminated OSC ends with its line,
 * because it would otherwise swallow the rest of the answer.
 */
export const terminalSequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds
  /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\|(?=\n))|[PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/g;
