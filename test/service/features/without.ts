import { cp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { features } from '../../../src/features.js';
import type { PrimaryFeature } from '../../../src/primary/features/feature.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { root } from '../../support/documents/sources.js';

export const names = features.map(({ name }) => name);

/** Returns the names of a feature and of all that need it. */
export function withDependents(name: string): string[] {
  const dependents = features.filter(({ needs = [] }: PrimaryFeature) => needs.includes(name));
  return [...new Set([name, ...dependents.flatMap((each) => withDependents(each.name))])];
}

/** A file that lists the features, and what it has for each of them. */
interface List {
  readonly path: string;
  /** Finds the import of a feature; its first group is what the list calls the feature. */
  readonly importOf: (name: string) => RegExp;
}

/** The list as it was written, and as it was compiled. */
export const lists = {
  source: {
    path: 'src/features.ts',
    importOf: (name) => new RegExp(`^import \\{ (\\w+) \\} from './features/${name}/.*\n`, 'm'),
  },
  compiled: {
    path: 'dist/src/features.js',
    importOf: (name) => new RegExp(`^const (\\w+) = require\\("./features/${name}/.*\n`, 'm'),
  },
} as const satisfies Record<string, List>;

/** Removes features from a copy: their folders, and their entries in the list. */
export async function removeFeatures(
  folder: string,
  { path, importOf }: List,
  removed: readonly string[],
): Promise<void> {
  const list = join(folder, path);
  let text = await readFile(list, 'utf8');
  for (const name of removed) {
    await rm(join(dirname(list), 'features', name), { recursive: true });
    const [line, entry] = importOf(name).exec(text) ?? [];
    if (line === undefined) throw new Error(`${path} has no import of ${name}`);
    text = text.replace(line, '').replace(new RegExp(`(?<=\\[[^\\]]*)\\b${entry}\\b(\\.\\w+)?,?`), '');
  }
  await writeFile(list, text);
}

/** Copies the folders of these features and the list from the project again. */
export async function restoreFeatures(folder: string, { path }: List, removed: readonly string[]): Promise<void> {
  for (const each of [path, ...removed.map((name) => join(dirname(path), 'features', name))])
    await cp(join(root, each), join(folder, each), { recursive: true });
}

/** Copies these files and folders of the project. */
export async function copyOf(paths: readonly string[]): Promise<TemporaryFolder> {
  const folder = await temporaryFolder();
  const filter = (path: string) => !path.endsWith('.map');
  for (const path of paths) await cp(join(root, path), join(folder.path, path), { recursive: true, filter });
  await symlink(join(root, 'node_modules'), join(folder.path, 'node_modules'));
  return folder;
}

type Pair = readonly [there: string, gone: string];

function separates(set: readonly string[], [there, gone]: Pair): boolean {
  return set.includes(gone) && !set.includes(there);
}

/**
 * Returns few sets of features so that for any two features, one set has the second and not the first, unless the first
 * needs the second. So each feature runs without each other one in some service.
 */
export function separatingSets(): string[][] {
  const sets: string[][] = [];
  let left: Pair[] = names.flatMap((gone) => {
    const dependents = withDependents(gone);
    return names.filter((there) => !dependents.includes(there)).map((there) => [there, gone] as const);
  });
  while (left.length > 0) {
    const set = widestSet(left);
    sets.push(set);
    left = left.filter((pair) => !separates(set, pair));
  }
  return sets;
}

/** Adds features, each with those that need it, as long as the set separates more of these pairs. */
function widestSet(pairs: readonly Pair[]): string[] {
  let set: string[] = [];
  for (let most = 0; ; ) {
    const wider = names.map((name) => [...new Set([...set, ...withDependents(name)])]);
    const counts = wider.map((each) => pairs.filter((pair) => separates(each, pair)).length);
    const count = Math.max(...counts);
    if (count <= most) return set;
    most = count;
    set = wider[counts.indexOf(count)] ?? set;
  }
}
