"""Every guided lesson, with what this reader has done of it, and a lesson of one's own."""

from explorer.views.lessons.lesson_list import draw_lessons, draw_own_lesson
from explorer.views.shared import widgets

widgets.opening(
    "Lessons",
    "Guided lessons: each step opens a page, explains what you see, and asks you to do one "
    "thing. Your progress is kept in this browser and sent nowhere.",
)
draw_lessons()
draw_own_lesson()
