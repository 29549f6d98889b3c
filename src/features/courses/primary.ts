import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { madeKeysOf } from '../keys-api/primary.js';
import { Courses } from './courses.js';
import type { calls } from './shared.js';

export const createCourses: CreatePrimaryPart = (core) => {
  const { clients, usageJournal, config, host } = core;
  const keys = madeKeysOf(core);
  const courses = new Courses({
    ...{ clients, usageJournal, keys, keyOptions: config.keyOptions },
    now: () => host.clock.now(),
  });
  const handlers: Handlers<typeof calls> = {
    listCourses: async ({ by }) => ({ courses: await courses.list(by) }),
    showCourse: ({ by, course }) => courses.show(by, course),
    enrolMembers: ({ by, course, logins, options }) => courses.enrol(by, course, logins, options),
    limitMember: ({ by, course, member, options }) => courses.limit(by, course, member, options),
    removeMember: ({ by, course, member }) => courses.remove(by, course, member),
  };
  return { handlers };
};
