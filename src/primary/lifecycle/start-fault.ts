import { ConfigFault } from '../../shared/config/config.js';
import { describeError, type LogEvent } from '../../shared/log/logger.js';
import { escaped } from '../../shared/text/paint.js';

/** Why the service can't start, for people and for the log. */
export interface StartFault {
  readonly isConfigFault: boolean;
  readonly text: string;
  readonly records: readonly (readonly [event: LogEvent, fields: Readonly<Record<string, string>>])[];
}

export function startFault(error: unknown): StartFault {
  const isConfigFault = error instanceof ConfigFault;
  const faults = isConfigFault ? error.faults : [describeError(error)];
  const warnings = isConfigFault ? error.warnings : [];
  const shown = [...faults, ...warnings.map((warning) => `Warning: ${warning}`)];
  const lines = shown.flatMap((fault) => fault.split('\n')).map((line) => `  ${escaped(line)}\n`);
  return {
    isConfigFault,
    text: `prompt-relay can't start:\n${lines.join('')}`,
    records: [
      ...faults.map((fault) => [isConfigFault ? 'config_invalid' : 'internal_error', { error: fault }] as const),
      ...warnings.map((warning) => ['config_warning', { warning }] as const),
    ],
  };
}

/** Where both streams end at one place, such as a terminal or the journal, a fault is told there once. */
export function placesOfFault(isSamePlace: boolean, isLogForPeople: boolean): { inText: boolean; inLog: boolean } {
  if (!isSamePlace) return { inText: true, inLog: true };
  return { inText: isLogForPeople, inLog: !isLogForPeople };
}
