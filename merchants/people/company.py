"""Company data that owners propose for their account, and the decision of staff."""

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.companies import company_of, data_of, save_company
from accounts.models import Account
from audit.models import AuditAction
from audit.services import find_changes, record_action
from core.inputs import InputProblem
from merchants.email.outbox import email_members
from merchants.models import CompanyProposal, ProposalState

# A condition of accounts.
PROPOSES = Q(
    Exists(CompanyProposal.objects.filter(account=OuterRef("pk"), state=ProposalState.WAITING))
)


def waiting_proposal(account: Account) -> CompanyProposal | None:
    """The proposal of the account that nobody has decided on."""
    waiting = CompanyProposal.objects.filter(account=account, state=ProposalState.WAITING)
    return waiting.select_related("proposed_by").first()


@transaction.atomic
def propose_company(*, account: Account, data: Mapping[str, str], actor: User) -> CompanyProposal:
    """Asks staff to take over company data. A proposal that waits is replaced.

    Raises InputProblem if nothing would change.
    """
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)  # serialises proposals
    changes = find_changes(data_of(company_of(account)), data)
    if not changes:
        raise InputProblem(_("This is what we have already. Change something first."))
    if earlier := waiting_proposal(account):
        _decide(earlier, actor=actor, state=ProposalState.WITHDRAWN)
    proposal = CompanyProposal.objects.create(account=account, proposed_by=actor, **data)
    record_action(
        actor=actor,
        action=AuditAction.COMPANY_PROPOSED,
        on=account,
        reference=account.name,
        changes=changes,
    )
    return proposal


@transaction.atomic
def withdraw_proposal(*, proposal: CompanyProposal, actor: User) -> bool:
    """Ends a proposal for its account. Returns False if it no longer waits."""
    if not _decide(proposal, actor=actor, state=ProposalState.WITHDRAWN):
        return False
    record_action(
        actor=actor,
        action=AuditAction.PROPOSAL_WITHDRAWN,
        on=proposal.account,
        reference=proposal.account.name,
    )
    return True


@transaction.atomic
def decide_proposal(
    *, proposal: CompanyProposal, accept: bool, actor: User, answer: str = ""
) -> bool:
    """Takes over the proposed data, or rejects them; the members receive an email with the answer.

    Returns False if the proposal no longer waits.
    """
    state = ProposalState.ACCEPTED if accept else ProposalState.REJECTED
    if not _decide(proposal, actor=actor, state=state, answer=answer):
        return False
    account = proposal.account
    if accept:
        save_company(account=account, data=data_of(proposal), actor=actor, note=answer)
    else:
        record_action(
            actor=actor,
            action=AuditAction.PROPOSAL_REJECTED,
            on=account,
            reference=account.name,
            note=answer,
            changes=find_changes(data_of(company_of(account)), data_of(proposal)),
        )
    email_members(
        account=account,
        actor=actor,
        change=gettext_noop("Company data accepted")
        if accept
        else gettext_noop("Company data rejected"),
        facts={gettext_noop("Reason"): answer} if answer else {},
    )
    return True


def _decide(
    proposal: CompanyProposal, *, actor: User, state: ProposalState, answer: str = ""
) -> int:
    waiting = CompanyProposal.objects.filter(pk=proposal.pk, state=ProposalState.WAITING)
    return waiting.update(state=state, decided_by=actor, decided_at=timezone.now(), answer=answer)
