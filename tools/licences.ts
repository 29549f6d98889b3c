import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { type Lockfile, productionFolders, readLockfile } from './lockfile.js';

/**
 * Licences that an installed package may have. Such a licence requires no more than that its notice is preserved, and
 * OFL-1.1 also that the font is not sold by itself.
 */
export const acceptedLicences: readonly string[] = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'OFL-1.1',
];

/**
 * Whether an SPDX expression is accepted: one licence of a choice, or all licences of a list. Anything else, such as an
 * exception or a nested expression, is rejected, because a person must read it.
 */
export function isAccepted(expression: string): boolean {
  const plain = expression.trim().replace(/^\(([^()]*)\)$/, '$1');
  const choices = plain.split(' OR ');
  const demands = plain.split(' AND ');
  if (choices.length > 1 && demands.length > 1) return false;
  if (choices.length > 1) return choices.some((name) => acceptedLicences.includes(name));
  return demands.every((name) => acceptedLicences.includes(name));
}

const manifestSchema = z.object({ license: z.string().optional() });

type ReadManifest = (folder: string) => Promise<unknown>;

/**
 * Returns a sentence for each package, installed with the service, that has no accepted licence in its package.json or
 * in the lockfile.
 */
export async function unaccepted(lockfile: Lockfile, readManifest: ReadManifest): Promise<string[]> {
  const faults: string[] = [];
  for (const folder of productionFolders(lockfile)) {
    const entry = lockfile.get(folder);
    const manifest = await readManifest(folder);
    // A package for another platform is not installed: only the lockfile has its licence.
    if (manifest === null && entry?.optional !== true) faults.push(`${folder} is not installed: run npm ci`);
    const licence = manifest === null ? entry?.license : manifestSchema.parse(manifest).license;
    if (licence === undefined) faults.push(`${folder} names no licence`);
    else if (!isAccepted(licence)) faults.push(`${folder} has the licence ${licence}, which is not on the list`);
  }
  return faults;
}

/** Reads the package.json of a package; null if the package is not installed. */
export async function readInstalled(root: string, folder: string): Promise<unknown> {
  const text = await readFile(join(root, folder, 'package.json'), 'utf8').catch(() => null);
  return text === null ? null : JSON.parse(text);
}

async function main(): Promise<void> {
  const root = join(__dirname, '..', '..');
  const lockfile = await readLockfile(root);
  const faults = await unaccepted(lockfile, (folder) => readInstalled(root, folder));
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  const count = productionFolders(lockfile).length;
  if (faults.length === 0) process.stdout.write(`the licences of ${count} packages are accepted\n`);
  else process.exitCode = 1;
}

if (require.main === module) {
  main().catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });
}
