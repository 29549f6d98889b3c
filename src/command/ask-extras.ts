import { imageFault } from '../shared/api/images.js';
import { type Effort, efforts, type Image, imageTypes } from '../shared/job.js';
import type { NamedFiles } from './command.js';
import { CommandError, exitCodes } from './errors.js';

/** What `ask` sends beside the prompt. All throw a CommandError. */

export function readEffort(given: string | undefined): Effort | undefined {
  if (given === undefined) return undefined;
  const known = efforts.find((effort) => effort === given);
  if (known !== undefined) return known;
  throw usageError(`--effort: must be ${efforts.slice(0, -1).join(', ')} or ${efforts.at(-1)}`);
}

/** JSON itself begins with a brace, anything else names a file. */
export async function readSchema(given: string | undefined, files: NamedFiles): Promise<unknown> {
  if (given === undefined) return undefined;
  const text = given.trimStart().startsWith('{') ? given : String(await readNamed('--schema', given, files));
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`--schema: is not valid JSON: ${(error as Error).message}`);
  }
}

/** The content tells the type, not the name. */
export async function readImages(paths: readonly string[], files: NamedFiles): Promise<object[] | undefined> {
  if (paths.length === 0) return undefined;
  return Promise.all(
    paths.map(async (path) => {
      const data = (await readNamed('--image', path, files)).toString('base64');
      const type = imageTypes.find((candidate: Image['mediaType']) => imageFault(candidate, data) === null);
      if (type === undefined) throw usageError(`--image: ${path} is no PNG, JPEG, GIF or WebP`);
      return { media_type: type, data };
    }),
  );
}

function readNamed(flag: string, path: string, files: NamedFiles): Promise<Buffer> {
  return files.read(path).catch((error: Error) => {
    throw usageError(`${flag}: ${error.message}`);
  });
}

function usageError(message: string): CommandError {
  return new CommandError(exitCodes.usage, message);
}
