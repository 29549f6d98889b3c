import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import type { RequestOptions } from 'node:http';
import { atMost } from '../../shared/async.js';

/** Largest number of names that are looked up at once: each occupies a thread that reads of files need, too. */
const maxLookups = 2;

/** Function that looks up names for the requests of `node:http`. */
export type Lookup = NonNullable<RequestOptions['lookup']>;

/** Function that finds all addresses of a name. */
export type FindAddresses = (name: string) => Promise<LookupAddress[]>;

/**
 * Returns a function that looks up few names at once, and each of them once for all its waiting requests. Other names
 * wait for their turn: a slow name is no fault of the others.
 */
export function limitedLookup(find: FindAddresses = addressesOf): Lookup {
  const inTurn = atMost(maxLookups);
  const open = new Map<string, Promise<LookupAddress[]>>();
  return (name, options, done) => {
    const found = open.get(name) ?? inTurn(() => find(name)).finally(() => open.delete(name));
    open.set(name, found);
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
