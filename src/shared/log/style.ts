export const logFormats = ['auto', 'json', 'text'] as const;
export type LogFormat = (typeof logFormats)[number];

/** How the log is written: one JSON object a line, or a line for people, with colours or without. */
export const logStyles = ['json', 'plain', 'coloured'] as const;
export type LogStyle = (typeof logStyles)[number];

interface ColourSettings {
  readonly NO_COLOR?: string | undefined;
  readonly TERM?: string | undefined;
}

/** `auto`: a terminal is read by people, anything else by programs. What is no format counts as `auto`. */
export function logStyleFor(format: string | undefined, isTerminal: boolean, env: ColourSettings): LogStyle {
  if (format === 'json' || (format !== 'text' && !isTerminal)) return 'json';
  return isTerminal && !env.NO_COLOR && env.TERM !== 'dumb' ? 'coloured' : 'plain';
}
