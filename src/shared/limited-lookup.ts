import { lookup } from 'node:dns/promises';
import type { RequestOptions } from 'node:http';

/** Largest number of names that are looked up at once: each occupies a thread that reads of files need, too. */
const maxLookups = 2;

/** Function that looks up names for the requests of `node:http`. */
export type Lookup = NonNullable<RequestOptions['lookup']>;

/** Returns a function that looks up few names at once, and each of them once for all its waiting requests. */
export function limitedLookup(): Lookup {
  const running = new Map<string, ReturnType<typeof addressesOf>>();
  return (name, options, done) => {
    let found = running.get(name);
    if (found === undefined && running.size >= maxLookups) {
      return done(new Error('other names are still being looked up'), '', 0);
    }
    if (found === undefined) {
      found = addressesOf(name).finally(() => running.delete(name));
      running.set(name, found);
    }
    found.then(
      (addresses) => {
        if (options.all === true) done(null, addresses);
        else done(null, addresses[0]?.address ?? '', addresses[0]?.family);
      },
      (error: NodeJS.ErrnoException) => done(error, '', 0),
    );
  };
}

function addressesOf(name: string) {
  return lookup(name, { all: true });
}
