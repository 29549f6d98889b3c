import { reasonOf } from './redis-faults.js';

/** What an operator has to know of how this Redis is set up, as sentences. Never rejects. */
export async function shortcomingsOf(ask: (command: string, ...args: string[]) => Promise<unknown>): Promise<string[]> {
  try {
    const [appendonly, policy] = await Promise.all([settingOf(ask, 'appendonly'), settingOf(ask, 'maxmemory-policy')]);
    return [
      ...(appendonly === 'no' ? ['appendonly is no: Redis forgets everything when it is restarted'] : []),
      ...(policy !== 'noeviction' ? [`maxmemory-policy is ${policy}, not noeviction: Redis may forget anything`] : []),
    ];
  } catch (error) {
    return [`appendonly and maxmemory-policy cannot be checked: ${reasonOf(error)}`];
  }
}

async function settingOf(ask: (command: string, ...args: string[]) => Promise<unknown>, name: string): Promise<string> {
  const [, value] = (await ask('CONFIG', 'GET', name)) as readonly unknown[];
  return String(value);
}
