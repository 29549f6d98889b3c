import { useEffect, useState } from 'preact/hooks';

/** Where in the console: `#/ask?conversation=ID`. */
interface PageAddress {
  /** Empty where none is named. */
  readonly page: string;
  readonly params: Readonly<Record<string, string>>;
}

/** What a page receives. */
export type PageProps = Pick<PageAddress, 'params'>;

export function placeOf(hash: string): PageAddress {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  return { page: path.replace(/\/+$/, ''), params: Object.fromEntries(new URLSearchParams(query)) };
}

export function hrefOf(page: string, params: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(params).toString();
  return `#/${page}${query === '' ? '' : `?${query}`}`;
}

/** Where the page is now, and the part after # of the address before. */
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
