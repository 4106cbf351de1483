"""One form that is sent twice at once issues one key."""

from uuid import uuid4

import pytest

from accounts.api_access.keys import AlreadyIssued, issue_key
from accounts.models import ApiKey
from tests.concurrency.racing import holding_locks, in_background, race, wait_for_waiting
from tests.factories import make_client

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_form_sent_several_times_at_once_issues_one_key() -> None:
    client, form = make_client(), uuid4()

    def send() -> bool:
        try:
            issue_key(client=client, actor=None, form=form)
        except AlreadyIssued:
            return False
        return True

    assert race([send] * 4).count(True) == 1
    assert client.keys.count() == 1


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "control"])
def test_a_form_that_is_being_sent_waits_for_the_first(
    monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    client, form = make_client(), uuid4()
    if not guarded:  # a look at the table does not show what is not yet committed
        create = ApiKey.objects.create
        monkeypatch.setattr(
            ApiKey.objects, "create", lambda **fields: create(**{**fields, "form": None})
        )

    def send() -> bool:
        try:
            issue_key(client=client, actor=None, form=form)
        except AlreadyIssued:
            return False
        return True

    first = (
        "INSERT INTO accounts_apikey (client_id, prefix, digest, form)"
        " VALUES (%s, 'abcdefabcdef', '', %s)"
    )
    with holding_locks(first, client.pk, form) as other, in_background(send) as sending:
        if guarded:
            wait_for_waiting()
        else:
            sending.result()
        other.commit()

    assert sending.result() is not guarded
    assert client.keys.count() == (1 if guarded else 2)
