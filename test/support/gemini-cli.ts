import { join } from 'node:path';
import { cacheFor, installOnce, npmInstall } from './install-once.js';

/** The newest on npm when this was written. */
export const geminiVersion = '0.61.0';

/** The command line of the real gemini program, 115 MB, installed with npm where it is not there yet. */
export async function installGemini(): Promise<readonly [node: string, program: string]> {
  const folder = await installOnce(cacheFor('gemini-cli'), geminiVersion, (building) =>
    npmInstall(building, '--omit=optional', `@google/gemini-cli@${geminiVersion}`),
  );
  return [process.execPath, join(folder, 'node_modules', '@google', 'gemini-cli', 'bundle', 'gemini.js')];
}
