import { useEffect, useState } from 'preact/hooks';

/** Page and parameters of an address such as `#/ask?conversation=ID`. */
interface PageAddress {
  /** ID of the page; empty if the address names none. */
  readonly page: string;
  readonly params: Readonly<Record<string, string>>;
}

/** Properties of every page component. */
export type PageProps = Pick<PageAddress, 'params'>;

export function placeOf(hash: string): PageAddress {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  return { page: path.replace(/\/+$/, ''), params: Object.fromEntries(new URLSearchParams(query)) };
}

export function hrefOf(page: string, params: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(params).toString();
  return `#/${page}${query === '' ? '' : `?${query}`}`;
}

/** Returns the current address, and the hash of the previous one, or an empty text. */
export function usePlace(): PageAddress & { readonly before: string } {
  const [place, setPlace] = useState(() => ({ ...placeOf(location.hash), before: '' }));
  useEffect(() => {
    const follow = ({ oldURL }: HashChangeEvent) =>
      setPlace({ ...placeOf(location.hash), before: new URL(oldURL).hash });
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return place;
}
