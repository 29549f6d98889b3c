import { consoleParts } from '../../support/clients/console-parts.js';

interface ListPages {
  readonly view: {
    readonly value: {
      readonly items: readonly Readonly<Record<string, string>>[] | null;
      readonly next: string | null;
      readonly state: unknown;
    };
  };
  readFirst(): Promise<void>;
  readMore(): Promise<void>;
  readAgain(): Promise<void>;
  forget(id: string): void;
}
interface Answering {
  json(path: string): Promise<unknown>;
}

const conversations = { name: 'conversations', path: '/chat', idName: 'conversation_id' } as const;
const jobs = { name: 'jobs', path: '/jobs', idName: 'job_id' } as const;
const listings = {
  conversations: { part: 'conversations/list.mjs', constant: 'conversationListing' },
  jobs: { part: 'jobs/page.mjs', constant: 'jobListing' },
};
type Kind = typeof conversations | typeof jobs;

async function pagesOf({ name }: Kind, api: Answering): Promise<ListPages> {
  type Parts = Record<string, unknown> & { ListPages: new (api: Answering, listing: unknown) => ListPages };
  const { part, constant } = listings[name];
  const { ListPages, [constant]: listing } = await consoleParts<Parts>('ui/paged-list.mjs', part);
  return new ListPages(api, listing);
}

/** Returns a page of a list. Each item is named by the second of its creation. */
function pageOf({ name, idName }: Kind, next: string | null, ...seconds: readonly number[]): object {
  const listed = (second: number) => {
    const at = new Date(second * 1000).toISOString();
    return { [idName]: `${second}`, created_at: at, last_activity_at: at };
  };
  return { [name]: seconds.map(listed), next_cursor: next };
}

function answering(answers: Readonly<Record<string, unknown>>): Answering {
  const json = async (path: string) => {
    const answer = answers[path];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { json };
}

const idsOf = ({ view }: ListPages, { idName }: Kind) => view.value.items?.map((item) => item[idName]);

describe.each([conversations, jobs])('The list of $name', (kind) => {
  const [firstPath, morePath] = [`${kind.path}?limit=30`, `${kind.path}?limit=30&cursor=7`];
  const answers: Record<string, unknown> = {
    [firstPath]: pageOf(kind, '7', 3, 2),
    [morePath]: pageOf(kind, null, 2, 1),
  };

  it('grows page by page, shows each entry once, and drops deleted ones', async () => {
    const pages = await pagesOf(kind, answering(answers));
    expect(pages.view.value).toEqual({ items: null, next: null, state: 'reading' });
    await pages.readFirst();
    expect([idsOf(pages, kind), pages.view.value.next]).toEqual([['3', '2'], '7']);
    await pages.readMore();
    await pages.readMore();
    expect(pages.view.value).toMatchObject({ next: null, state: 'ready' });
    expect(idsOf(pages, kind)).toEqual(['3', '2', '1']);
    pages.forget('2');
    expect(idsOf(pages, kind)).toEqual(['3', '1']);
  });

  it('preserves its entries if the next page cannot be read, and can be retried', async () => {
    const faulty = { ...answers, [morePath]: new Error('gone') as unknown };
    const pages = await pagesOf(kind, answering(faulty));
    await pages.readFirst();
    await pages.readMore();
    expect(pages.view.value).toMatchObject({ next: '7', state: { failure: new Error('gone') } });
    expect(idsOf(pages, kind)).toEqual(['3', '2']);
    faulty[morePath] = answers[morePath];
    await pages.readAgain();
    expect(idsOf(pages, kind)).toEqual(['3', '2', '1']);
  });

  it('can also be reloaded from its start after all of it was read', async () => {
    const faulty = { [firstPath]: pageOf(kind, null, 2, 1) as unknown };
    const pages = await pagesOf(kind, answering(faulty));
    await pages.readFirst();
    faulty[firstPath] = new Error('gone');
    await pages.readFirst();
    expect(pages.view.value).toMatchObject({ next: null, state: { failure: new Error('gone') } });
    faulty[firstPath] = pageOf(kind, null, 3, 2);
    await pages.readAgain();
    expect([idsOf(pages, kind), pages.view.value.state]).toEqual([['3', '2'], 'ready']);
  });

  it('shows only the later of two overlapping answers', async () => {
    const waiting: ((answer: object) => void)[] = [];
    const pages = await pagesOf(kind, { json: () => new Promise((resolve) => waiting.push(resolve)) });
    const both = [pages.readFirst(), pages.readFirst()];
    waiting[1]?.(pageOf(kind, null, 2));
    waiting[0]?.(pageOf(kind, null, 1));
    await Promise.all(both);
    expect(idsOf(pages, kind)).toEqual(['2']);
  });

  it('preserves the later entries when its start is read again', async () => {
    const grown = { [firstPath]: pageOf(kind, '7', 4, 3), [morePath]: pageOf(kind, null, 2) };
    const pages = await pagesOf(kind, answering(grown));
    await pages.readFirst();
    await pages.readMore();
    grown[firstPath] = pageOf(kind, '9', 5, 4);
    await pages.readFirst();
    expect([idsOf(pages, kind), pages.view.value.next]).toEqual([['5', '4', '3', '2'], null]);
  });
});
