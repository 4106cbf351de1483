"""The forms of cases that the back office and the merchant site share."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.text import format_lazy

from cases.models import MESSAGE_LENGTH, Case
from cases.services import MAX_FILES
from core.files.uploads import ACCEPTED, FORM_BYTES, MAX_BYTES
from core.inputs import InputProblem
from core.texts import lazy

# A message with its files, as a browser sends them.
MOST_BYTES = MAX_FILES * MAX_BYTES + FORM_BYTES


class FilesInput(forms.FileInput):
    """A choice of several files."""

    allow_multiple_selected = True


class FilesField(forms.FileField):
    """Several files. Cleans to their names and contents."""

    widget = FilesInput(attrs={"accept": ACCEPTED})

    def __init__(self, **options: Any) -> None:
        super().__init__(
            required=False,
            help_text=format_lazy(
                lazy("Up to {files} PNG or JPEG pictures or PDFs, each of at most {size} MB."),
                files=MAX_FILES,
                size=MAX_BYTES // 1_000_000,
            ),
            **options,
        )

    def clean(self, data: Any, initial: Any = None) -> list[tuple[str, bytes]]:
        files = [super(FilesField, self).clean(one, initial) for one in data or []]
        return [(file.name, file.read()) for file in files]


class VersionForm(forms.Form):
    """The version of the case that the reader of the form saw."""

    version = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, *arguments: Any, case: Case, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields["version"].initial = case.version


class TextForm(forms.Form):
    """A message with files."""

    text = forms.CharField(
        max_length=MESSAGE_LENGTH,
        label=lazy("Message"),
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=lazy("Do not write the code itself: the case names it."),
    )
    attachments = FilesField(label=lazy("Files"))


class SubjectField(forms.ChoiceField):
    """The subject of a new case, one of `subjects_of` an order."""

    def __init__(self, **options: Any) -> None:
        super().__init__(label=lazy("About"), **options)

    def offer(self, subjects: list[tuple[str, str]]) -> None:
        self.choices = subjects
        self.required = len(subjects) > 1


class AnswerForm(TextForm, VersionForm):
    """A message in a case."""

    def refuse(self, problem: InputProblem, case: Case) -> None:
        """Shows the problem. The page shows what was written meanwhile, so the form can be sent
        again with the newest version."""
        self.add_error(None, str(problem))
        case.refresh_from_db()
        typed = {name: self.data[name] for name in self.data}  # a QueryDict holds lists
        self.data = {**typed, "version": case.version}
