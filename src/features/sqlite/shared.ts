import type { StoreFamily } from '../../shared/config/stores.js';

/** Returns the path of the file that a value of MODEL_API_STORE names. It is absolute, because a service may be started in any folder. */
export function pathIn(text: string): string | null {
  return /^sqlite:(\/.*[^/])$/.exec(text)?.[1] ?? null;
}

export const family = {
  ...{ kind: 'sqlite', dataPlace: 'file', isShared: false, form: 'sqlite:/absolute/path.db' },
  parsePlace: (text) => {
    const path = pathIn(text);
    return path === null ? null : { shown: path, password: null };
  },
} satisfies StoreFamily;

/** Returns why this version of Node cannot open such a store; null if it can. */
export function findFault(hasSqlite: boolean): string | null {
  return hasSqlite ? null : `sqlite: needs Node.js 22.13 or later, and this is ${process.version}`;
}
