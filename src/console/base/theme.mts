import { Observable } from './observable.mjs';

/** Choices for the colours of the pages. The first one follows the system. */
export const themes = ['as the system', 'light', 'dark'] as const;
type ThemeName = (typeof themes)[number];

const entry = 'prompt-relay-theme';

/** Owns the colours that the user has chosen, for this tab and those that are opened later. */
export class Theme {
  readonly choice: Observable<ThemeName>;
  readonly #storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

  constructor(storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>) {
    this.#storage = storage;
    this.choice = new Observable(themeOf(storage.getItem(entry)));
    this.#apply();
  }

  choose(name: string): void {
    this.choice.set(themeOf(name));
    if (this.choice.value === themes[0]) this.#storage.removeItem(entry);
    else this.#storage.setItem(entry, this.choice.value);
    this.#apply();
  }

  #apply(): void {
    const { value } = this.choice;
    document.documentElement.dataset.theme = value;
    for (const meta of document.querySelectorAll<HTMLMetaElement>('meta[data-theme]')) {
      const own = meta.dataset.theme;
      const isWanted = value === own ? 'all' : 'not all';
      meta.media = value === themes[0] ? `(prefers-color-scheme: ${own})` : isWanted;
    }
  }
}

function themeOf(name: string | null): ThemeName {
  return themes.find((theme) => theme === name) ?? themes[0];
}
