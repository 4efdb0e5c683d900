//! One coordinator: the machines of `firn_coordinator`, driven as its intake drives them. It keeps
//! nothing over a crash but its name and its key.

use std::{collections::BTreeMap, sync::Arc};

use firn_coordinator::{
    registry::{Connected, Registry},
    session::{
        Failing,
        dkg::{self, CeremonyFault, DkgAttempt, DkgMade},
        proof::{ProofAttempt, subsets},
        request::{Move, Request, RequestTerms, answer},
        round::RoundFailed,
        sign::{AttemptOutcome, SignAttempt},
    },
    voice::Voice,
};
use firn_protocol::{
    codec::{self, Text},
    documents::Plan,
    envelope::Approved,
    ids::{Identifier, RequestId},
    limits,
    messages::{FromMember, RequestFailed, RequestSigned, ToMember},
    reject::Reject,
    sharing::CertifiedSharing,
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use super::{
    carrier::{Carrier, Ground},
    host::{Carried, Time},
    network::{JobId, Network, StreamId},
    people::{COORDINATORS, MEMBERS},
};

/// How long one question to all members may take.
const ASK_MS: u64 = 10_000;

/// What a client asks of a coordinator.
pub(super) enum Asked {
    /// To have a request signed.
    Sign(Box<RequestTerms>),
    /// To run the ceremony of a plan.
    Run(Box<Approved<Plan>>),
    /// To ask every member the same.
    Tell(Box<ToMember>),
}

/// What it is told.
#[derive(Debug)]
pub(super) enum Answered {
    /// The signatures.
    Signed(Box<RequestSigned>),
    /// No signatures.
    Failed(Box<RequestFailed>),
    /// Every member has certified and proved the key.
    Certified(Box<CertifiedSharing>),
    /// The ceremony failed.
    CeremonyFailed(CeremonyFault),
    /// What each member said.
    Told(BTreeMap<usize, Result<FromMember, Reject>>),
}

/// An answer that is on its way to whoever asked.
#[derive(Debug)]
pub(super) struct Mail {
    pub(super) client: usize,
    pub(super) ask: u64,
    pub(super) answer: Answered,
}

/// One coordinator's machine.
pub(super) struct Coordinator {
    number: usize,
    pub(super) up: bool,
    pub(super) time: Time,
    voice: Arc<Voice>,
    registry: Registry<()>,
    jobs: BTreeMap<JobId, Job>,
    rng: ChaCha20Rng,
}

struct Job {
    client: usize,
    ask: u64,
    work: Work,
}

enum Work {
    /// Another job has the same request.
    Queued(Arc<RequestTerms>),
    Wait(Box<Request>, Vec<Identifier>, u64),
    Attempt(Box<Request>, Box<Carrier<SignAttempt>>),
    Dkg(Box<Carrier<DkgAttempt>>),
    Proof(Box<Proving>, Box<Carrier<ProofAttempt>>),
    Tell(Telling),
    Over,
}

struct Proving {
    made: Box<DkgMade>,
    groups: Vec<Vec<Identifier>>,
}

struct Telling {
    streams: BTreeMap<StreamId, usize>,
    said: BTreeMap<usize, Result<FromMember, Reject>>,
    deadline: u64,
}

impl Coordinator {
    pub(super) fn new(number: usize, time: Time, seed: u64) -> Self {
        let person = COORDINATORS[number];
        Self {
            number,
            up: true,
            time,
            voice: Arc::new(Voice::new(person.id("coordinator"), person.secret())),
            registry: Registry::default(),
            jobs: BTreeMap::new(),
            rng: ChaCha20Rng::seed_from_u64(seed ^ (0xc0 + number as u64)),
        }
    }

    /// The process ends; what it was doing is forgotten.
    pub(super) fn crash(&mut self) {
        self.up = false;
        self.jobs.clear();
        self.registry = Registry::default();
    }

    pub(super) fn join(&mut self, member: usize) {
        let person = MEMBERS[member];
        self.registry.join(
            person.id("participant"),
            Connected {
                connection: (),
                identity: person.key(),
                software: Text::new("firn").unwrap(),
                since: self.time.now(),
            },
        );
    }

    pub(super) fn leave(&mut self, member: usize) {
        self.registry
            .leave(&MEMBERS[member].id("participant"), |()| true);
    }

    /// When it must be told that time has passed.
    pub(super) fn deadline(&self) -> Option<u64> {
        let deadlines = self.jobs.values().filter_map(|job| match &job.work {
            Work::Queued(_) | Work::Over => None,
            Work::Wait(_, _, start) => Some(*start),
            Work::Attempt(_, carrier) => Some(carrier.deadline),
            Work::Dkg(carrier) => Some(carrier.deadline),
            Work::Proof(_, carrier) => Some(carrier.deadline),
            Work::Tell(telling) => Some(telling.deadline),
        });
        deadlines.min()
    }

    /// Takes a question; `job` is new.
    pub(super) fn ask(
        &mut self,
        job: JobId,
        client: usize,
        ask: u64,
        asked: Asked,
        network: &mut Network,
    ) -> Vec<Mail> {
        let mut ground = self.ground(network, job);
        let work = match asked {
            Asked::Sign(terms) => {
                let terms = Arc::from(terms);
                self.jobs.insert(
                    job,
                    Job {
                        client,
                        ask,
                        work: Work::Queued(terms),
                    },
                );
                return self.take_turns(network);
            }
            Asked::Run(plan) => match self.open_ceremony(*plan, &mut ground) {
                Ok(carrier) => Work::Dkg(Box::new(carrier)),
                Err(fault) => {
                    let answer = Answered::CeremonyFailed(fault);
                    return vec![Mail {
                        client,
                        ask,
                        answer,
                    }];
                }
            },
            Asked::Tell(message) => {
                let frame: Arc<[u8]> = codec::encode(&*message).unwrap().into();
                let mut streams = BTreeMap::new();
                for member in 0..MEMBERS.len() {
                    let stream = ground.network.open(ground.coordinator, member, job);
                    ground
                        .network
                        .send_to_member(stream, Carried::Frame(Arc::clone(&frame)));
                    streams.insert(stream, member);
                }
                Work::Tell(Telling {
                    streams,
                    said: BTreeMap::new(),
                    deadline: ground.elapsed + ASK_MS,
                })
            }
        };
        self.jobs.insert(job, Job { client, ask, work });
        Vec::new()
    }

    /// Takes what came on a stream.
    pub(super) fn arrive(
        &mut self,
        job: JobId,
        stream: StreamId,
        carried: Carried,
        network: &mut Network,
    ) -> Vec<Mail> {
        self.step(job, network, |work, ground| match work {
            Work::Attempt(request, mut carrier) => {
                let outcome = carrier.arrive(stream, carried, ground);
                Next::Attempt(request, carrier, outcome)
            }
            Work::Dkg(mut carrier) => {
                let outcome = carrier.arrive(stream, carried, ground);
                Next::Dkg(carrier, outcome)
            }
            Work::Proof(proving, mut carrier) => {
                let outcome = carrier.arrive(stream, carried, ground);
                Next::Proof(proving, carrier, outcome)
            }
            Work::Tell(mut telling) => {
                telling.hear(stream, carried, ground.network);
                Next::Work(Work::Tell(telling))
            }
            work @ (Work::Queued(_) | Work::Wait(..) | Work::Over) => Next::Work(work),
        })
    }

    /// Time has passed.
    pub(super) fn expire(&mut self, network: &mut Network) -> Vec<Mail> {
        let elapsed = self.time.elapsed();
        let due: Vec<_> = self
            .jobs
            .iter()
            .filter(|(_, job)| match &job.work {
                Work::Queued(_) | Work::Over => false,
                Work::Wait(_, _, start) => *start <= elapsed,
                Work::Attempt(_, carrier) => carrier.deadline <= elapsed,
                Work::Dkg(carrier) => carrier.deadline <= elapsed,
                Work::Proof(_, carrier) => carrier.deadline <= elapsed,
                Work::Tell(telling) => telling.deadline <= elapsed,
            })
            .map(|(job, _)| *job)
            .collect();
        let mut mail = Vec::new();
        for job in due {
            mail.extend(self.step(job, network, |work, ground| match work {
                Work::Attempt(request, mut carrier) => {
                    let outcome = carrier.expire(ground);
                    Next::Attempt(request, carrier, outcome)
                }
                Work::Dkg(mut carrier) => {
                    let outcome = carrier.expire(ground);
                    Next::Dkg(carrier, outcome)
                }
                Work::Proof(proving, mut carrier) => {
                    let outcome = carrier.expire(ground);
                    Next::Proof(proving, carrier, outcome)
                }
                Work::Tell(mut telling) => {
                    telling.give_up(ground.network);
                    Next::Work(Work::Tell(telling))
                }
                Work::Wait(request, members, _) => Next::Begin(request, members),
                work @ (Work::Queued(_) | Work::Over) => Next::Work(work),
            }));
        }
        mail
    }

    fn ground<'a>(&self, network: &'a mut Network, job: JobId) -> Ground<'a> {
        Ground {
            network,
            coordinator: self.number,
            job,
            elapsed: self.time.elapsed(),
        }
    }

    fn step(
        &mut self,
        id: JobId,
        network: &mut Network,
        act: impl FnOnce(Work, &mut Ground<'_>) -> Next,
    ) -> Vec<Mail> {
        let Some(mut job) = self.jobs.remove(&id) else {
            return Vec::new();
        };
        let mut ground = self.ground(network, id);
        let next = act(job.work, &mut ground);
        let (work, answer) = self.follow(next, &mut ground);
        job.work = work;
        let mut mail = Vec::new();
        match answer {
            Some(answer) => mail.push(Mail {
                client: job.client,
                ask: job.ask,
                answer,
            }),
            None => {
                self.jobs.insert(id, job);
            }
        }
        mail.extend(self.take_turns(network));
        mail
    }

    /// Begins what nobody else is doing.
    fn take_turns(&mut self, network: &mut Network) -> Vec<Mail> {
        let mut mail = Vec::new();
        let under_way = |jobs: &BTreeMap<JobId, Job>, wanted: RequestId| {
            jobs.values().any(|job| match &job.work {
                Work::Wait(request, ..) | Work::Attempt(request, _) => {
                    request.terms().subject.request_id == wanted
                }
                Work::Queued(_) | Work::Dkg(_) | Work::Proof(..) | Work::Tell(_) | Work::Over => {
                    false
                }
            })
        };
        let queued: Vec<_> = self
            .jobs
            .iter()
            .filter_map(|(id, job)| match &job.work {
                Work::Queued(terms) => Some((*id, Arc::clone(terms))),
                Work::Wait(..)
                | Work::Attempt(..)
                | Work::Dkg(_)
                | Work::Proof(..)
                | Work::Tell(_)
                | Work::Over => None,
            })
            .collect();
        for (id, terms) in queued {
            if under_way(&self.jobs, terms.subject.request_id) {
                continue;
            }
            let request = Box::new(Request::new(terms));
            let Some(mut job) = self.jobs.remove(&id) else {
                continue;
            };
            let mut ground = self.ground(network, id);
            let (work, answer) = self.choose(request, &mut ground);
            job.work = work;
            match answer {
                Some(answer) => mail.push(Mail {
                    client: job.client,
                    ask: job.ask,
                    answer,
                }),
                None => {
                    self.jobs.insert(id, job);
                }
            }
        }
        mail
    }

    fn follow(&mut self, next: Next, ground: &mut Ground<'_>) -> (Work, Option<Answered>) {
        match next {
            Next::Work(Work::Tell(telling)) if telling.streams.is_empty() => {
                (Work::Over, Some(Answered::Told(telling.said)))
            }
            Next::Work(work) => (work, None),
            Next::Begin(request, members) => self.attempt(request, &members, ground),
            Next::Attempt(request, carrier, None) => (Work::Attempt(request, carrier), None),
            Next::Attempt(_, _, Some(AttemptOutcome::Signed(signed))) => {
                let signed = answer(*signed).unwrap();
                (Work::Over, Some(Answered::Signed(Box::new(signed))))
            }
            Next::Attempt(request, _, Some(AttemptOutcome::Failed(failed))) => {
                self.failed(request, &failed, ground)
            }
            Next::Dkg(carrier, None) => (Work::Dkg(carrier), None),
            Next::Dkg(_, Some(Err(fault))) | Next::Proof(_, _, Some(Err(fault))) => {
                (Work::Over, Some(Answered::CeremonyFailed(fault)))
            }
            Next::Dkg(_, Some(Ok(made))) => {
                let public = made.sharing.public();
                let threshold = usize::from(public.threshold().value());
                let groups = subsets(public.members(), threshold);
                self.prove(Box::new(Proving { made, groups }), ground)
            }
            Next::Proof(proving, carrier, None) => (Work::Proof(proving, carrier), None),
            Next::Proof(proving, _, Some(Ok(_))) => self.prove(proving, ground),
        }
    }

    fn choose(
        &mut self,
        mut request: Box<Request>,
        ground: &mut Ground<'_>,
    ) -> (Work, Option<Answered>) {
        let now = self.time.now();
        let candidates = self.registry.candidates(&request.terms().roster, now);
        match request.choose(&candidates, now, &mut self.rng) {
            Move::GiveUp(failed) => (Work::Over, Some(Answered::Failed(failed))),
            Move::Attempt(members, start) => {
                let wait = start.value().saturating_sub(now.value());
                if wait == 0 {
                    self.attempt(request, &members, ground)
                } else {
                    (Work::Wait(request, members, ground.elapsed + wait), None)
                }
            }
        }
    }

    fn attempt(
        &mut self,
        request: Box<Request>,
        members: &[Identifier],
        ground: &mut Ground<'_>,
    ) -> (Work, Option<Answered>) {
        match SignAttempt::open(request.terms(), members, &self.voice, &mut self.rng) {
            Ok((attempt, opening)) => {
                let carrier = Carrier::open(attempt, opening, members, false, ground);
                (Work::Attempt(request, Box::new(carrier)), None)
            }
            Err(code) => self.failed(request, &code.into(), ground),
        }
    }

    fn failed(
        &mut self,
        mut request: Box<Request>,
        failed: &RoundFailed,
        ground: &mut Ground<'_>,
    ) -> (Work, Option<Answered>) {
        let now = self.time.now();
        for fault in &failed.faults {
            if !matches!(fault.failing, Failing::Refused(_)) {
                let roster = &request.terms().roster;
                self.registry.suspect(roster, fault.member, now);
            }
        }
        request.failed(failed, now);
        self.choose(request, ground)
    }

    fn open_ceremony(
        &mut self,
        plan: Approved<Plan>,
        ground: &mut Ground<'_>,
    ) -> Result<Carrier<DkgAttempt>, CeremonyFault> {
        let everybody: Vec<_> = plan.roster.iter().map(|entry| entry.identifier).collect();
        self.all_there(&plan, &everybody)?;
        let (attempt, opening) =
            dkg::open(plan, &self.voice, &mut self.rng).map_err(|code| CeremonyFault {
                code,
                culprit: None,
                accuser: None,
                step: "round one",
            })?;
        Ok(Carrier::open(attempt, opening, &everybody, true, ground))
    }

    fn all_there(&self, plan: &Plan, members: &[Identifier]) -> Result<(), CeremonyFault> {
        let missing = members.iter().find(|member| {
            let entry = plan.member_at(**member).unwrap();
            self.registry.reach(entry).is_none()
        });
        match missing {
            Some(member) => Err(CeremonyFault {
                code: Reject::QuorumUnavailable,
                culprit: Some(*member),
                accuser: None,
                step: "connect",
            }),
            None => Ok(()),
        }
    }

    /// The next proof of life, or the end of the ceremony.
    fn prove(
        &mut self,
        mut proving: Box<Proving>,
        ground: &mut Ground<'_>,
    ) -> (Work, Option<Answered>) {
        let sharing = &proving.made.sharing;
        let Some(group) = proving.groups.pop() else {
            return (
                Work::Over,
                Some(Answered::Certified(Box::new(sharing.clone()))),
            );
        };
        if let Err(fault) = self.all_there(sharing.plan(), &group) {
            return (Work::Over, Some(Answered::CeremonyFailed(fault)));
        }
        let (attempt, opening) =
            ProofAttempt::open(sharing, &group, &self.voice, &mut self.rng).unwrap();
        let carrier = Carrier::open(attempt, opening, &group, true, ground);
        (Work::Proof(proving, Box::new(carrier)), None)
    }
}

/// What comes of a step of a job.
enum Next {
    Work(Work),
    Begin(Box<Request>, Vec<Identifier>),
    Attempt(
        Box<Request>,
        Box<Carrier<SignAttempt>>,
        Option<AttemptOutcome>,
    ),
    Dkg(
        Box<Carrier<DkgAttempt>>,
        Option<Result<Box<DkgMade>, CeremonyFault>>,
    ),
    Proof(
        Box<Proving>,
        Box<Carrier<ProofAttempt>>,
        Option<Result<Box<firn_protocol::messages::ProofRecord>, CeremonyFault>>,
    ),
}

impl Telling {
    fn hear(&mut self, stream: StreamId, carried: Carried, network: &mut Network) {
        let Some(member) = self.streams.remove(&stream) else {
            return;
        };
        let word = match carried {
            Carried::Frame(frame) => {
                codec::decode(&frame, limits::MAX_CEREMONY_MESSAGE).map_err(Reject::from)
            }
            Carried::Finish | Carried::Reset => Err(Reject::SessionFailed),
        };
        self.said.insert(member, word);
        network.close(stream);
    }

    fn give_up(&mut self, network: &mut Network) {
        for (stream, member) in std::mem::take(&mut self.streams) {
            self.said.insert(member, Err(Reject::Deadline));
            network.close(stream);
        }
    }
}
