import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { root } from './sources.js';

interface Packed {
  /** Path of the archive. */
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

/** Packs the project into this folder without scripts: `prepack` would rebuild the files that the tests run. */
export async function packProject(into: string): Promise<Packed> {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', into];
  const [packed] = JSON.parse((await promisify(execFile)('npm', args, { cwd: root })).stdout) as Packed[];
  if (packed === undefined) throw new Error('nothing was packed');
  return packed;
}
