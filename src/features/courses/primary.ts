import type { StoredKind } from '../../primary/features/stored-kind.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { madeKeysOf } from '../keys-api/primary.js';
import { usingStore } from '../stores/contract/full-store.js';
import { recordsPlace } from '../stores/stored-records.js';
import { usageOf } from '../usage/primary.js';
import { Courses } from './courses.js';
import { KnownMembers } from './known-members.js';
import type { calls } from './shared.js';

export const createCourses = usingStore((core) => {
  const { clients, config, host } = core;
  const keys = madeKeysOf(core);
  const place = recordsPlace(core, 'course-members');
  const known = new KnownMembers(place);
  const courses = new Courses({
    ...{ clients, usage: usageOf(core), keys, keyOptions: config.keyOptions, known },
    now: () => host.clock.now(),
  });
  let remembered: readonly unknown[] = [];
  /** Remembers the members if the keys have changed. */
  const remember = async () => {
    const sources = [clients.groupLines, clients.personLines, keys.all];
    if (sources.every((source, index) => source === remembered[index])) return;
    const names = new Set(clients.groupLines.map(({ name }) => name));
    if (await known.remember(courses.present, names)) remembered = sources;
  };
  const change = async <T>(act: Promise<T>): Promise<T> => {
    const answer = await act;
    await remember();
    return answer;
  };
  const handlers: Handlers<typeof calls> = {
    listCourses: async ({ by }) => ({ courses: await courses.list(by) }),
    showCourse: ({ by, course }) => courses.show(by, course),
    enrolMembers: ({ by, course, logins, options }) => change(courses.enrol(by, course, logins, options)),
    limitMember: ({ by, course, member, options }) => courses.limit(by, course, member, options),
    removeMember: ({ by, course, member }) => courses.removeMember(by, course, member),
  };
  return {
    handlers,
    refreshKeys: async () => {
      await known.refresh();
      await remember();
    },
    recordsOf: (client) => ({ course_member: known.findRecords(client) }),
    removeClients: async (isAmong) => ({ course_members: await known.removeOf(isAmong) }),
    storedKinds: [storedMembers(place.place)],
  };
});

function storedMembers(place: StoredKind['place']): StoredKind {
  return {
    ...{ kind: 'course members', content: 'names and clients of present and former members of courses', place },
    ...{ keptMs: null, until: 'until the course has no line in the keys file', readers: ['admin', 'host'] },
    ...{ export: 'GET /export', deletion: 'POST /store/purge', variables: [] },
  };
}
