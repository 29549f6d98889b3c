import { z } from 'zod';

const authorPattern = /^[^<>]+ <[^<>@\s]+@[^<>@\s]+>$/;
/** npm also permits `NAME <ADDRESS> (URL)` and an object. Parses to `NAME <ADDRESS>`, or to a text without this form. */
const author = z
  .union([
    z.string().transform((text) => text.replace(/ *\([^()]*\)$/, '')),
    z
      .looseObject({ name: z.string().default(''), email: z.string().default('') })
      .transform(({ name, email }) => `${name} <${email}>`),
  ])
  .catch('');
const url = z.union([z.string(), z.looseObject({ url: z.string() }).transform((place) => place.url)]).catch('');
const ownerSchema = z.looseObject({ author, bugs: url, repository: url });

/** Returns which fields about the owner of the project are missing or wrong in package.json, the only place of them. */
export function ownerFaults(manifest: unknown): string[] {
  const { author, bugs, repository } = ownerSchema.parse(manifest);
  const faults: string[] = [];
  if (!authorPattern.test(author)) faults.push('author ("NAME <ADDRESS>")');
  if (!URL.canParse(bugs)) faults.push('bugs.url (where people report faults)');
  if (!isRepository(repository)) faults.push('repository.url ("git+https://…")');
  return faults;
}

/** Returns the author of package.json as a Debian package names its maintainer. */
export function maintainerOf(manifest: unknown): string {
  const { author } = ownerSchema.pick({ author: true }).parse(manifest);
  return authorPattern.test(author) ? author : 'The prompt-relay authors <prompt-relay@localhost.localdomain>';
}

/** Whether a text is a URL, or one of the short forms of npm, such as `github:ada/relay` and `ada/relay`. */
function isRepository(text: string): boolean {
  return URL.canParse(text) || /^[\w.-]+\/[\w.-]+$/.test(text);
}
