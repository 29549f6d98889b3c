import { isDeepStrictEqual } from 'node:util';
import { type Clock, yieldToEventLoop } from '../../shared/clock.js';
import { isRefused } from '../../shared/config/api-keys.js';
import { keysFileWarnings } from '../../shared/config/group-warnings.js';
import type { OptionTable } from '../../shared/config/key-options.js';
import { readKeysFileInSlices, refuseCosts } from '../../shared/config/keys-file.js';
import type { Logger } from '../../shared/log/logger.js';
import { type Clients, sameKeys } from './clients.js';
import { type FileFaults, shownFaults } from './file-faults.js';
import { type FileListener, WatchedFile } from './watched-file.js';

/** Parts of the reload of the keys file. */
export interface KeysFileParts {
  readonly clients: Clients;
  readonly keyOptions: OptionTable;
  /** Sends the keys to the workers. Resolves when they use them. */
  readonly onChange: () => Promise<void>;
  readonly fileFaults: FileFaults;
  readonly log: Logger;
  /** Whether each model CLI reports what a job costs. */
  readonly reportsCosts: boolean;
  /** Returns warnings of features about the new keys. */
  readonly findWarnings: () => readonly string[];
}

/** Creates the watch of the keys file, which is not started yet; null if no keys file is configured. */
export function watchKeysFile(path: string | null, parts: KeysFileParts, clock: Clock): WatchedFile | null {
  return path === null ? null : new WatchedFile(path, keysListener(parts), clock);
}

/** Applies the lines of the keys file. A line with a fault is refused, and does not change what the others mean. */
export function keysListener(parts: KeysFileParts): FileListener {
  const { clients, keyOptions, onChange, fileFaults, log, reportsCosts, findWarnings } = parts;
  const report = (faults: readonly string[], modifiedAt: number | null) => {
    if (fileFaults.replace('keys', faults, modifiedAt) && faults.length > 0)
      log.error('keys_rejected', { error: shownFaults(faults) });
  };
  return {
    read: async (text, modifiedAt = null): Promise<boolean> => {
      const lines = await readKeysFileInSlices(text, keyOptions, clients.fixedKeys, yieldToEventLoop);
      const content = reportsCosts ? lines : refuseCosts(lines, keyOptions);
      const { keys, groupLines, personLines, faults } = content;
      const hasSameLines =
        isDeepStrictEqual(groupLines, clients.groupLines) && isDeepStrictEqual(personLines, clients.personLines);
      const hasChanged = !hasSameLines || !(await sameKeys(keys, clients.namedKeys, yieldToEventLoop));
      if (hasChanged) {
        clients.replaceNamedKeys(content);
        await onChange();
        const warnings = [...findWarnings(), ...keysFileWarnings(content)];
        for (const warning of warnings) log.warn('config_warning', { warning });
      }
      const isRepaired = faults.length === 0 && fileFaults.countOf('keys') > 0;
      report(faults, modifiedAt);
      if (hasChanged || isRepaired) log.info('keys_loaded', { keys: clients.keyCount - keys.filter(isRefused).length });
      return faults.length === 0;
    },
    unreadable: ({ message }) => report([message], null),
  };
}
