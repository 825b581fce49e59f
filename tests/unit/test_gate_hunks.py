"""Reading `git diff -U0`: which lines of the head were changed, and where those of the base are now."""

from __future__ import annotations

from bottleneck_doctor.gate.cause import hunks

DIFF = """\
diff --git train.py train.py
index 1..2 100644
--- train.py
+++ train.py
@@ -3,2 +3,3 @@ def step():
-a
---- b
+A
+++ B
+C
@@ -10,0 +12 @@
+new
@@ -20 +21,0 @@
-gone
diff --git old name.py new.py
similarity index 90%
rename from old name.py
rename to new.py
--- old name.py\t
+++ new.py
@@ -1 +1 @@
-x
+y
diff --git added.py added.py
new file mode 100644
--- /dev/null
+++ added.py
@@ -0,0 +1,2 @@
+p
+q
diff --git "caf\\303\\251.py" "caf\\303\\251.py"
--- "caf\\303\\251.py"
+++ "caf\\303\\251.py"
@@ -5 +5 @@
-1
+2
diff --git removed.py removed.py
--- removed.py
+++ /dev/null
@@ -1,2 +0,0 @@
-p
-q
"""


def test_changed_lines() -> None:
    seen = hunks.read(DIFF)
    assert [line for line in range(1, 30) if seen.changed("train.py", line)] == [3, 4, 5, 12]
    assert seen.changed("added.py", 2)
    assert seen.changed("café.py", 5)
    assert not seen.changed("other.py", 1)


def test_lines_of_the_base_are_followed() -> None:
    seen = hunks.read(DIFF)
    follow = {line: seen.on_head("train.py", line) for line in (1, 2, 3, 4, 5, 10, 11, 19, 20, 21)}
    assert follow == {
        1: ("train.py", 1), 2: ("train.py", 2), 3: None, 4: None, 5: ("train.py", 6), 10: ("train.py", 11),
        11: ("train.py", 13), 19: ("train.py", 21), 20: None, 21: ("train.py", 22),
    }  # fmt: skip
    assert seen.on_head("old name.py", 7) == ("new.py", 7)
    assert seen.on_head("old name.py", 1) is None
    assert seen.on_head("untouched.py", 9) == ("untouched.py", 9)


def test_nothing_differs() -> None:
    assert hunks.read("") == hunks.Differences()
