import type { Clock } from '../../shared/clock.js';
import { readKeysFile } from '../../shared/config/keys-file.js';
import type { Logger } from '../../shared/logger.js';
import type { Clients } from './clients.js';
import { type FileListener, WatchedFile } from './watched-file.js';

/** The watch over the keys file, not started yet; null where none is configured. `onChange` is called for other keys. */
export function watchKeysFile(
  path: string | null,
  clients: Clients,
  onChange: () => void,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): WatchedFile | null {
  return path === null ? null : new WatchedFile(path, keysListener(clients, onChange, log), clock);
}

/** Puts the keys of the keys file in force. A file with any fault leaves the keys as they are. */
export function keysListener(clients: Clients, onChange: () => void, log: Logger): FileListener {
  let isBroken = false;
  const refuse = (fault: string) => {
    isBroken = true;
    log.error('keys_rejected', { error: fault });
  };
  return {
    read: (text) => {
      const { keys, faults } = readKeysFile(text, clients.fixed);
      if (faults.length > 0) return refuse(faults.join('; '));
      const hasChanged = clients.replaceNamed(keys);
      if (hasChanged) onChange();
      if (hasChanged || isBroken) log.info('keys_loaded', { keys: clients.count });
      isBroken = false;
    },
    unreadable: ({ message }) => refuse(message),
  };
}
