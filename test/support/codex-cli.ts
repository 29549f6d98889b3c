import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheFor, installOnce, npmInstall } from './install-once.js';

/** The newest on npm when this was written. */
export const codexVersion = '0.169.0';

/** The path of the real codex program, 400 MB, installed with npm where it is not there yet. */
export async function installCodex(version = codexVersion): Promise<string> {
  const folder = await installOnce(cacheFor('codex'), version, (building) =>
    npmInstall(building, `@openai/codex@${version}`),
  );
  return programIn(folder);
}

/** In the package of the platform: the one that is named codex is a script that starts it. */
async function programIn(folder: string): Promise<string> {
  const scope = join(folder, 'node_modules', '@openai');
  const platform = (await readdir(scope)).find((name) => name.startsWith('codex-'));
  if (platform === undefined) throw new Error(`npm installed no codex program for this platform in ${folder}`);
  const vendor = join(scope, platform, 'vendor');
  const [target = ''] = await readdir(vendor);
  return join(vendor, target, 'bin', 'codex');
}
