import { open, unlink } from 'node:fs/promises';
import { CommandError, exitCodes } from '../../command/base/errors.js';
import { meaningOf } from '../../shared/text/system-error.js';
import { textCell } from '../usage/csv.js';

/** New member with the key, which no other place has. */
export interface SheetLine {
  readonly login: string;
  readonly name: string;
  readonly keyName: string;
  readonly key: string;
}

/** Facts that each line of a sheet has. */
export interface SheetFacts {
  readonly course: string;
  /** Address of the service; null if the command does not know it. */
  readonly url: string | null;
}

/** Returns the sheet: a table in CSV with one line for each person. */
export function sheetText(lines: readonly SheetLine[], { course, url }: SheetFacts): string {
  const rows = lines.map(({ login, name, keyName, key }) => [login, name, course, keyName, key, url ?? '']);
  const head = ['login', 'name', 'course', 'key_name', 'key', 'service'];
  return [head, ...rows].map((cells) => `${cells.map(textCell).join(',')}\r\n`).join('');
}

/** Creates a sheet, which only the user can read. Throws a CommandError if the path exists, and never replaces a file. */
export async function createSheet(
  path: string,
): Promise<{ write(text: string): Promise<void>; remove(): Promise<void> }> {
  const fault = (error: NodeJS.ErrnoException) => {
    const hint = error.code === 'EEXIST' ? ': choose another file with --sheet' : '';
    return new CommandError(exitCodes.config, `course: ${path}: ${meaningOf(error)}${hint}`);
  };
  const file = await open(path, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw fault(error);
  });
  return {
    write: async (text) => {
      try {
        await file.writeFile(text);
        await file.sync();
      } catch (error) {
        throw fault(error as NodeJS.ErrnoException);
      } finally {
        await file.close();
      }
    },
    remove: async () => {
      await file.close().catch(() => {});
      await unlink(path).catch(() => {});
    },
  };
}
