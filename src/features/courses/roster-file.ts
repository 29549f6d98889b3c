import type { CommandContext } from '../../command/base/command.js';
import { CommandError, exitCodes } from '../../command/base/errors.js';
import { formatCount } from '../../shared/text/format.js';
import { fileFault } from '../../shared/text/system-error.js';
import { type RosterPerson, readRoster, signOnFaults } from './roster.js';

/** Reads a roster, or stdin for `-`. Throws a CommandError with all its faults. */
export async function peopleIn(
  roster: string,
  isSignOn: boolean,
  { terminal, files }: CommandContext,
): Promise<readonly RosterPerson[]> {
  const read = roster === '-' ? terminal.readStdin().then((text) => Buffer.from(text)) : files.readRegular(roster);
  const bytes = await read.catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(exitCodes.config, `course: ${fileFault(roster, error)}`);
  });
  const { people, faults } = readRoster(bytes);
  const all = [...faults, ...(isSignOn ? signOnFaults(people) : [])];
  if (all.length > 0) throw refusedCourse(all, `The roster ${roster} has ${formatCount(all.length, 'fault')}`);
  return people;
}

/** Returns the error with all faults because of which a command changes nothing. */
export function refusedCourse(faults: readonly string[], summary: string): CommandError {
  return new CommandError(exitCodes.config, [...faults, `course: ${summary}. Nothing was changed.`].join('\n'));
}
