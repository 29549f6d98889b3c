import type { FunctionComponent } from 'preact';

/** What a page is told. */
export interface PageProps {
  /** Of the address: `#/ask?conversation=ID`. */
  readonly params: Readonly<Record<string, string>>;
}

export interface PageEntry {
  readonly id: string;
  readonly title: string;
  /** Its code is read when it is shown first. */
  readonly load: () => Promise<FunctionComponent<PageProps>>;
  /** It is hidden, not taken away, when another page is shown: something may go on in it. */
  readonly isKept?: boolean;
}

/** Every page, in the order of the navigation. The first is shown where the address names none. */
export const pages: readonly [PageEntry, ...PageEntry[]] = [
  { id: 'ask', title: 'Ask', load: async () => (await import('./pages/ask.mjs')).AskPage, isKept: true },
  { id: 'now', title: 'Now', load: async () => (await import('./pages/now.mjs')).NowPage },
  { id: 'usage', title: 'Usage', load: async () => (await import('./pages/usage.mjs')).UsagePage },
  {
    id: 'conversations',
    title: 'Conversations',
    load: async () => (await import('./pages/conversations.mjs')).ConversationsPage,
  },
  { id: 'jobs', title: 'Jobs', load: async () => (await import('./pages/jobs.mjs')).JobsPage },
  { id: 'setup', title: 'Set-up', load: async () => (await import('./pages/setup.mjs')).SetupPage },
];
