import { z } from 'zod';

const ownerSchema = z.looseObject({
  author: z.string().default(''),
  bugs: z.looseObject({ url: z.string() }).default({ url: '' }),
  repository: z.looseObject({ url: z.string() }).default({ url: '' }),
});

/** Returns which fields about the owner of the project are missing or wrong in package.json, the only place of them. */
export function ownerFaults(manifest: unknown): string[] {
  const { author, bugs, repository } = ownerSchema.parse(manifest);
  const isUrl = (text: string) => URL.canParse(text);
  const faults: string[] = [];
  if (!/^[^<>]+ <[^<>@\s]+@[^<>@\s]+>$/.test(author)) faults.push('author ("NAME <ADDRESS>")');
  if (!isUrl(bugs.url)) faults.push('bugs.url (where people report faults)');
  if (!isUrl(repository.url)) faults.push('repository.url ("git+https://…")');
  return faults;
}

/** Returns the author of package.json as a Debian package names its maintainer. */
export function maintainerOf(manifest: unknown): string {
  const { author } = ownerSchema.parse(manifest);
  return author === '' ? 'The prompt-relay authors <prompt-relay@localhost.localdomain>' : author;
}
