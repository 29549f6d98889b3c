/** Meanings of operating system errors. */
const meanings: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EEXIST: 'it already exists',
  ELOOP: 'it is a symbolic link that may not be followed',
  ENOSPC: 'the disk is full',
  EDQUOT: 'your quota of the disk is used up',
  EROFS: 'the disk is read-only',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was lost',
  ETIMEDOUT: 'no response in time',
  EHOSTUNREACH: 'this host is unreachable',
  ENETUNREACH: 'this host is unreachable',
  ENOTFOUND: 'no host has this name',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
};

/** Returns the meaning of an error; for an unknown code, the error's message. */
export function meaningOf({ code, message }: NodeJS.ErrnoException): string {
  const meaning = code === undefined ? undefined : meanings[code];
  return meaning ?? (message || String(code));
}

/** Returns the message for an error of a file operation. */
export function fileFault(path: string, error: NodeJS.ErrnoException): string {
  return error.code !== undefined && error.code in meanings ? `${path}: ${meaningOf(error)}` : error.message;
}
